"""Platform differences, atomic writes, locks, checksums, clocks, threads."""

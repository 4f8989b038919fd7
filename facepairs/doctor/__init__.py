"""The dataset doctor: reads every photo of a folder and reports what would mislead a training."""

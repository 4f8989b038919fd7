"""Tables of parts of the pairs: groups of people, factors, and how far their errors differ."""

from facepairs.bundles.rates import Errors
from facepairs.evaluation.error_rates import is_small, pair_counts
from facepairs.evaluation.group_errors import Differential, GroupRatio
from facepairs.evaluation.report.table import Cell, Table, table_of
from facepairs.evaluation.summary import Summary

STRANGERS, GENUINE = "strangers accepted (FMR)", "genuine pairs missed (FNMR)"


def groups_table(summary: Summary) -> Table:
    """Return the errors within groups of people."""
    rows = [{"group": group} | _errors_of_part(errors) for group, errors in summary.groups.items()]
    note = (
        f"Threshold: {summary.default_point.label}. Worst first; pairs within the group, 95 % "
        "intervals. The groups are those of the file that was given."
    )
    return table_of("groups", "Errors by group", rows, note)


def differentials(summary: Summary) -> dict[str, Differential]:
    """Return how far the FMR and the FNMR differ between groups, where it is known."""
    found = summary.group_differences
    both = {"FMR": found.fmr, "FNMR": found.fnmr} if found else {}
    return {name: one for name, one in both.items() if one is not None}


def differences_of_groups(summary: Summary) -> list[Table]:
    """Return the FMR between groups, and how far error rates differ between them."""
    found, groups = summary.group_differences, list(summary.groups)
    if found is None:
        return []
    rates = summary.fmr_by_groups
    matrix = [
        {"group": one, **{f"and {other}": rates[one, other] or "too few" for other in groups}}
        for one in groups
    ]
    rows = [
        {
            "error": name,
            "worst": one.worst_to_best.larger,
            "best": one.worst_to_best.smaller,
            "worst to best": ratio_cell(one.worst_to_best),
            "worst to geometric mean": ratio_cell(one.worst_to_geometric_mean),
            "larger than chance": ", ".join(
                f"{two.larger} over {two.smaller}" for two in one.larger_than_chance
            )
            or "none",
        }
        for name, one in differentials(summary).items()
    ]
    between = "Strangers accepted, one of either group, at the same threshold; 95 % intervals."
    note = (
        "How many times as large the rates within groups are, without groups that are too few to "
        "judge. All intervals of a line hold together in 95 % of studies (Bonferroni's correction "
        "for every two groups); a difference is larger than chance if its interval is above 1."
    )
    return [
        table_of("between", "FMR between groups", matrix if len(groups) > 1 else [], between),
        table_of("ratios", "Differences between groups", rows, note),
    ]


def factors_table(summary: Summary) -> Table:
    """Return the errors by the levels of factors, and without the pairs of the worst photos."""
    rows: list[dict[str, object]] = []
    for factor in summary.factors:
        parts = [*factor.levels.items()]
        for row in factor.discarded[1:]:
            kept = f"{row.bound:.4g} or {'more' if factor.worst == 'lowest' else 'less'}"
            parts.append((f"{kept} (worst {100 * row.share:.0f} % left out)", row.errors))
        rows += [{"factor": factor.name, "level": k} | _errors_of_part(it) for k, it in parts]
    note = (
        f"Threshold: {summary.default_point.label}, 95 % intervals. Levels of a number have as "
        "many genuine pairs each; of two photos, the worse counts. Then without the worst photos."
    )
    return table_of("factors", "Errors by factor", rows, note)


def _errors_of_part(errors: Errors) -> dict[str, object]:
    """Return the errors of some of the pairs, and how many there are, by column."""
    genuine, impostor = pair_counts(errors)
    return {
        STRANGERS: errors.fmr,
        GENUINE: errors.fnmr,
        "failures to acquire (FTA)": errors.fta,
        "people": errors.people or 0,
        "pairs of strangers": impostor,
        "genuine pairs": genuine,
        "warning": "too few to judge" if is_small(errors) else None,
    }


def ratio_cell(ratio: GroupRatio) -> Cell:
    """Return how many times as large a rate is as another, with its interval."""
    low, high = ratio.interval
    if ratio.value is None or high is None:
        return Cell(f"at least {low:.2f}", ratio.value, ratio.interval)
    return Cell(f"{ratio.value:.2f} ({low:.2f} to {high:.2f})", ratio.value, ratio.interval)

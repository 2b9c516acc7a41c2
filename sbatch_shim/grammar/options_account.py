"""The options of the commands on accounting and on the controller's state, one row each (25.11)."""

# ruff: noqa: E501 - a row stays on one line

from __future__ import annotations

from sbatch_shim.grammar.table import NO, OPT, REQ

# fmt: off
SACCTMGR = (
    # long            short arg  environment          what for                                    same as
    ("associations",    "s", NO,  "",                  "with associations",                        ""),
    ("autocomplete",    "",  REQ, "",                  "values of an option, for shells",          ""),
    ("help",            "h", NO,  "",                  "say what commands there are",              ""),
    ("immediate",       "i", NO,  "",                  "do not ask before a change",               ""),
    ("json",            "",  OPT, "",                  "all there is as JSON",                     ""),
    ("noheader",        "n", NO,  "",                  "no headline",                              ""),
    ("oneliner",        "o", NO,  "",                  "a line for each record",                   ""),
    ("parsable",        "p", NO,  "",                  "columns ended by a bar",                   ""),
    ("parsable2",       "P", NO,  "",                  "columns with a bar between",               ""),
    ("quiet",           "Q", NO,  "",                  "errors only",                              ""),
    ("readonly",        "r", NO,  "",                  "change nothing",                           ""),
    ("usage",           "",  NO,  "",                  "say what commands there are",              ""),
    ("verbose",         "v", NO,  "",                  "say more",                                 ""),
    ("version",         "V", NO,  "",                  "say the version",                          ""),
    ("yaml",            "",  OPT, "",                  "all there is as YAML",                     ""),
)

SREPORT = (
    ("all_clusters",    "a", NO,  "",                  "all clusters",                             ""),
    ("autocomplete",    "",  REQ, "",                  "values of an option, for shells",          ""),
    ("cluster",         "M", REQ, "",                  "clusters to report on",                    "clusters"),
    ("clusters",        "M", REQ, "SLURM_CLUSTERS",    "clusters to report on",                    ""),
    ("federation",      "",  NO,  "SREPORT_FEDERATION", "all clusters of the federation",          ""),
    ("help",            "h", NO,  "",                  "say what reports there are",               ""),
    ("local",           "",  NO,  "SREPORT_LOCAL",     "this cluster only",                        ""),
    ("noheader",        "n", NO,  "",                  "no headline",                              ""),
    ("parsable",        "p", NO,  "",                  "columns ended by a bar",                   ""),
    ("parsable2",       "P", NO,  "",                  "columns with a bar between",               ""),
    ("quiet",           "Q", NO,  "",                  "errors only",                              ""),
    ("time",            "t", REQ, "",                  "unit of time used",                        ""),
    ("tres",            "T", REQ, "SREPORT_TRES",      "TRES to report on",                        ""),
    ("usage",           "",  NO,  "",                  "say what reports there are",               ""),
    ("verbose",         "v", NO,  "",                  "say more",                                 ""),
    ("version",         "V", NO,  "",                  "say the version",                          ""),
)

SDIAG = (
    ("all",             "a", NO,  "",                  "everything",                               ""),
    ("autocomplete",    "",  REQ, "",                  "values of an option, for shells",          ""),
    ("cluster",         "M", REQ, "",                  "cluster to ask",                           "clusters"),
    ("clusters",        "M", REQ, "SLURM_CLUSTERS",    "cluster to ask",                           ""),
    ("help",            "h", NO,  "",                  "say what options there are",               ""),
    ("json",            "",  OPT, "",                  "all there is as JSON",                     ""),
    ("no-trunc",        "",  NO,  "",                  "lists at full length",                     ""),
    ("reset",           "r", NO,  "",                  "set the counts to zero",                   ""),
    ("sort-by-id",      "i", NO,  "",                  "calls by their number",                    ""),
    ("sort-by-time",    "t", NO,  "",                  "calls by their whole time",                ""),
    ("sort-by-time2",   "T", NO,  "",                  "calls by their mean time",                 ""),
    ("usage",           "",  NO,  "",                  "short list of options",                    ""),
    ("version",         "V", NO,  "",                  "say the version",                          ""),
    ("yaml",            "",  OPT, "",                  "all there is as YAML",                     ""),
)

SEFF = (
    ("debug",           "d", NO,  "",                  "what was read too",                        ""),
    ("help",            "h", NO,  "",                  "say what options there are",               ""),
    ("version",         "v", NO,  "",                  "say the version",                          ""),
)
# fmt: on

ACCOUNT_COMMANDS = {"sacctmgr": SACCTMGR, "sreport": SREPORT, "sdiag": SDIAG, "seff": SEFF}

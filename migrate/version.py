"""The version of the tool, in results and on the command line."""

VERSION = "0.1.0"

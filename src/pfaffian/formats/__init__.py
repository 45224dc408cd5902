"""Untrusted text to Mechanism. Nothing here runs, imports or fetches what a file says."""

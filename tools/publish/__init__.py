"""The static site: every notebook as one page that needs neither network nor kernel."""

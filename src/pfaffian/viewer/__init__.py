"""What people look at: tables, summaries, figures, studies and their claims."""

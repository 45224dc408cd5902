"""Output for people: tables, summaries, figures, 3D views, studies and their claims."""

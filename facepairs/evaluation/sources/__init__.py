"""What is measured: models and files of scores, how they were made, whom they know."""

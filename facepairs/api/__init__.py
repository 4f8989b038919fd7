"""The public functions of facepairs, which the commands call too; `facepairs` exports them."""

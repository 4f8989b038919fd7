"""What a training reads: people, images, cached pairs and the weights it starts from."""

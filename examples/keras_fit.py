"""Train the difference network with Keras's own `fit`.

    pip install '.[train]'                           # in a clone of facepairs
    facepairs data synth --out photos --people 100   # or your own photos
    python examples/keras_fit.py photos

Nobody of the test is trained on, and no epoch is chosen by them.
"""

import argparse

import keras

import facepairs


def main(photos: str, epochs: int, pairs: int) -> float:
    """Train, and return the AUC on people who were not trained on."""
    training = facepairs.pairs_dataset(photos, pairs=pairs)
    validation = facepairs.pairs_dataset(photos, split="validation")
    test = facepairs.pairs_dataset(photos, split="test")

    model = facepairs.build_keras("difference", image_size=64)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[facepairs.PairMetrics()],
    )
    model.fit(training, validation_data=validation, epochs=epochs, shuffle=False, verbose=2)

    auc = model.evaluate(test, verbose=0, return_dict=True)["pair_auc"]
    print(f"AUC on people it has never met: {auc:.4f}")
    return auc


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", help="folder of Person_Name/photo.jpg")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=6_400, help="pairs per epoch")
    options = parser.parse_args()
    main(options.photos, options.epochs, options.pairs)

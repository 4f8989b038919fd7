"""A crop plan cuts what verification cuts, and its digest is that of the crops."""

import numpy as np
from drawn.photos import encoded, smooth

from facepairs.photos.crop import CropPlan, CropSpec, Similarity, load_crop, warp_photo
from facepairs.photos.photo import open_photo

SPEC = CropSpec(250, 112)
MAPS = np.array([[[0.5, -0.1, 3], [0.1, 0.5, -9]], [[0.2, 0, 30.5], [0, 0.2, 2]]])
PLAIN = np.array([(260, 300), (0, 0)], np.int32)


def test_without_maps_the_centre_square_is_cut():
    plan = CropPlan(SPEC, PLAIN)
    data = encoded(smooth(300, 260), "JPEG")
    assert (len(plan), plan.alignment) == (2, "lfw-frame")
    assert np.array_equal(plan.crop(open_photo(data), 1), load_crop(data, SPEC))


def test_with_maps_each_image_has_its_own_square():
    plan = CropPlan(SPEC, PLAIN, MAPS, "landmarks-5")
    data = encoded(smooth(300, 260), "JPEG")
    for image, (first, second) in enumerate(MAPS):
        square = Similarity(np.array([first[:2], second[:2]]), np.array([first[2], second[2]]))
        expected = warp_photo(open_photo(data), square, 112)
        assert np.array_equal(plan.crop(open_photo(data), image), expected)
    swapped = plan.take(np.array([1, 0, 1]))
    assert swapped.tf_decodable.tolist() == [False, True, False]
    assert np.array_equal(swapped.crop(open_photo(data), 1), plan.crop(open_photo(data), 0))
    assert CropPlan(SPEC, PLAIN).take(np.array([1])).to_crop is None

"""Fields that clients may leave out, and what others may be."""

from facepairs.server.routes import openapi

KEYS = ("default", "minimum", "maximum", "minItems", "maxItems")


def limits(schema):
    found = {}
    for name, field in schema["properties"].items():
        ways = [field, *field.get("anyOf", ())]
        values = {key: way[key] for way in ways for key in KEYS if key in way}
        if values:
            found[name] = values
    return found


def test_a_name_stands_in_the_path_and_other_requests_in_the_body():
    operations = {
        (method, path): operation
        for path, methods in openapi()["paths"].items()
        for method, operation in methods.items()
    }
    path = ("delete", "/v1/people/{name}")
    assert [key for key, value in operations.items() if "parameters" in value] == [path]
    (parameter,) = operations[path]["parameters"]
    assert parameter | {"name": "name", "in": "path", "required": True} == parameter
    bodies = {key: value for key, value in operations.items() if "requestBody" in value}
    assert set(bodies) == {key for key in operations if key[0] == "post"}
    assert all(value["requestBody"]["required"] is True for value in bodies.values())


def test_defaults_and_limits_of_requests():
    schemas = openapi()["components"]["schemas"]
    assert {
        name: fields
        for name, schema in schemas.items()
        if name.endswith("Request") and (fields := limits(schema))
    } == {
        "VerifyRequest": {
            "left_face": {"default": None, "minimum": 1},
            "right_face": {"default": None, "minimum": 1},
            "threshold": {"default": None},
            "max_fmr": {"default": None},
            "prior": {"default": 0.5},
            "describe": {"default": False},
        },
        "DetectRequest": {"crops": {"default": False}},
        "EmbedRequest": {"image": {"minItems": 1, "maxItems": 16}},
        "EnrolRequest": {
            "photo": {"minItems": 1, "maxItems": 16},
            "face": {"default": 1, "minimum": 1},
            "forget_after": {"default": None},
            "any_quality": {"default": False},
        },
        "IdentifyRequest": {
            "face": {"default": 1, "minimum": 1},
            "threshold": {"default": None},
            "max_fpir": {"default": None},
            "top": {"default": 5, "minimum": 1, "maximum": 1000},
            "describe": {"default": False},
        },
    }

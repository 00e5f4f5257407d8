"""For all Python tests: all() of nothing is false in them. An assertion about a list that is empty by
mistake fails then."""


def all_of_some(items):
    found = False
    for item in items:
        if not item:
            return False
        found = True
    return found


def pytest_collection_modifyitems(items):
    for module in {item.module for item in items}:
        module.all = all_of_some

"""What the encoder makes of tables as people have them."""

import polars as pl
import pytest
from real_data import LABELS, real_table

from cbrank.features import TableEncoder


def table(name):
    return real_table(name)[0]


def columns_of(encoder, kind):
    return {name for name, found in encoder.kinds_.items() if found == kind}


def test_adult():
    found = TableEncoder().fit(table("adult"))
    numbers = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hr_per_week"}
    assert columns_of(found, "number") == numbers
    assert columns_of(found, "word") == {*found.feature_names_in_} - numbers
    assert 220 < found.width_ < 320  # with values of gains and losses that come often


def test_telco():
    found = TableEncoder().fit(table("telco"))
    assert columns_of(found, "drop") == {"customerID"}
    assert "customerID: left out, an id (every value is different)" in found.decisions()
    assert columns_of(found, "number") == {
        "SeniorCitizen",
        "tenure",
        "CustomerSatisfactionScore",
        "MonthlyCharges",
        "TotalCharges",
    }
    told = found.decisions()[-1]
    assert told.startswith("TotalCharges: a number, 8 pieces between 19.15 and 8468.2; ")
    assert "TotalCharges: missing" in found.get_feature_names_out()


def test_hypothyroid():
    found = TableEncoder().fit(table("hypothyroid"))
    numbers = {"age", "TSH", "T3", "TT4", "T4U", "FTI", "TBG"}
    assert columns_of(found, "number") == numbers
    assert columns_of(found, "word") == {*found.feature_names_in_} - numbers
    missing = {name for name in found.get_feature_names_out() if name.endswith(": missing")}
    assert missing >= {f"{name}: missing" for name in numbers}


def test_sms_spam():
    found = TableEncoder().fit(table("sms-spam"))
    assert columns_of(found, "text") == {"message"}
    assert found.is_wide_


@pytest.mark.parametrize("name", ["elec", "weather"])
def test_streams_of_numbers(name):
    frame = table(name)
    found = TableEncoder().fit(frame)
    assert columns_of(found, "number") == {*frame.columns}
    owners = found.owners_[found.bends_]
    assert {*owners.tolist()} == {*range(frame.shape[1])}
    assert found.width_ <= 13 * frame.shape[1]


@pytest.mark.parametrize("name", LABELS)
def test_libraries_and_chunks_agree(name):
    frame = table(name)[:3000]
    whole = TableEncoder().partial_fit(frame)
    other = TableEncoder().partial_fit(pl.from_pandas(frame))
    chunks = TableEncoder()
    for begin in range(0, len(frame), 700):
        chunks.partial_fit(frame[begin : begin + 700])
    expected = whole.transform(frame)
    for encoder in (other, chunks):
        assert (encoder.transform(frame) != expected).nnz == 0
        assert encoder.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    assert (whole.transform(frame.to_dict("records")) != expected).nnz == 0

"""produce_orders.py FORMAT BROKERS REGISTRY TOPIC PARTITIONS FIRST COUNT [USER:PASSWORD]: orders FIRST
to FIRST + COUNT - 1 as Confluent's own serializers write them, with keys of the same format (text of
json). Each order twice, on two partitions: the same record."""

import base64
import collections
import datetime
import decimal
import json
import sys
import uuid

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

START = datetime.datetime(2026, 11, 22, 13, 5, tzinfo=datetime.timezone.utc)

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "order_id", "type": "string"},
        {"name": "amount", "type": "int"},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4},
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "trace", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "raw", "type": "bytes"},
        {
            "name": "state",
            "type": ["null", {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}],
        },
        {"name": "tags", "type": {"type": "map", "values": "long"}},
    ],
}


Format = collections.namedtuple("Format", "serialize value serialize_key key read read_key")


def order_id(number):
    return f"order-{number}"


def amount(number):
    return number % 1000 + 1


def price(number):
    return decimal.Decimal(number * 12_345_678_901_234_567 - 10**18).scaleb(-4)


def avro(client):
    serialize = AvroSerializer(client, json.dumps(AVRO))
    key = AvroSerializer(client, json.dumps("string"))

    def value(number):
        return {
            "order_id": order_id(number),
            "amount": amount(number),
            "price": price(number),
            "at": START + datetime.timedelta(microseconds=number),
            "day": START.date(),
            "trace": uuid.UUID(int=number),
            "raw": bytes([0, 255]),
            "state": None if number % 2 else "PAID",
            "tags": {"n": 2**62 + number},
        }

    return Format(serialize, value, key, order_id, AvroDeserializer(client), AvroDeserializer(client))


def protobuf(client):
    """The descriptor of orders.proto, made here: no compiler is needed."""
    file = descriptor_pb2.FileDescriptorProto(
        name="orders.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    field = descriptor_pb2.FieldDescriptorProto

    def add(message, name, number, kind, of=""):
        made = message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
        if of:
            made.type_name = of

    customer = file.message_type.add(name="Customer")
    add(customer, "name", 1, field.TYPE_STRING)
    order = file.message_type.add(name="Order")
    add(order, "order_id", 1, field.TYPE_STRING)
    add(order, "amount", 2, field.TYPE_INT32)
    add(order, "number", 3, field.TYPE_INT64)
    add(order, "raw", 4, field.TYPE_BYTES)
    add(order, "at", 5, field.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    add(order, "customer", 6, field.TYPE_MESSAGE, ".shop.Customer")
    pool = descriptor_pool.Default()
    assert timestamp_pb2.DESCRIPTOR is not None
    pool.AddSerializedFile(file.SerializeToString())
    one = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    name = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Customer"))

    def value(number):
        made = one(order_id=order_id(number), amount=amount(number), number=2**62 + number)
        made.raw = bytes([0, 255])
        made.at.FromDatetime(START)
        made.customer.name = f"customer {number}"
        return made

    settings = {"use.deprecated.format": False}
    return Format(
        ProtobufSerializer(one, client, settings),
        value,
        ProtobufSerializer(name, client, settings),
        lambda number: name(name=order_id(number)),
        ProtobufDeserializer(one, settings),
        ProtobufDeserializer(name, settings),
    )


def json_schema(client):
    schema = {"title": "Order", "type": "object", "properties": {"order_id": {"type": "string"}}}
    text = {"title": "Key", "type": "object"}
    return Format(
        JSONSerializer(json.dumps(schema), client),
        lambda number: {"order_id": order_id(number), "amount": amount(number)},
        JSONSerializer(json.dumps(text), client),
        lambda number: {"id": order_id(number)},
        JSONDeserializer(json.dumps(schema)),
        JSONDeserializer(json.dumps(text)),
    )


MAKERS = {"avro": avro, "protobuf": protobuf, "json_schema": json_schema}


def main():
    kind, brokers, registry, topic, partitions, first, count = sys.argv[1:8]
    settings = {"url": registry}
    if len(sys.argv) > 8:
        settings["basic.auth.user.info"] = sys.argv[8]
    client = SchemaRegistryClient(settings)
    orders = MAKERS[kind](client)
    of_value = SerializationContext(topic, MessageField.VALUE)
    of_key = SerializationContext(topic, MessageField.KEY)
    failed = []
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 20})
    last = None
    for number in range(int(first), int(first) + int(count)):
        written = orders.serialize(orders.value(number), of_value)
        last = (orders.serialize_key(orders.key(number), of_key), written)
        for place in (number, number + 1):
            producer.produce(
                topic,
                key=last[0],
                value=written,
                partition=place % int(partitions),
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        producer.poll(0)
    producer.flush()
    if failed:
        sys.exit(f"not acknowledged: {failed[0]}")
    print(base64.b64encode(last[0]).decode(), base64.b64encode(last[1]).decode())


if __name__ == "__main__":
    main()

"""read_orders.py FORMAT BROKERS REGISTRY TOPIC COUNT [USER:PASSWORD]: reads what is committed of TOPIC with
Confluent's own deserializers, and says whether it is the orders 0 to COUNT - 1 of produce_orders.py, each
twice, with their keys, every part of them equal."""

import collections
import sys

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext
from produce_orders import MAKERS


def main():
    kind, brokers, registry, topic, count = sys.argv[1:6]
    settings = {"url": registry}
    if len(sys.argv) > 6:
        settings["basic.auth.user.info"] = sys.argv[6]
    orders = MAKERS[kind](SchemaRegistryClient(settings))
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "read-orders",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    of_value = SerializationContext(topic, MessageField.VALUE)
    of_key = SerializationContext(topic, MessageField.KEY)
    expected = collections.Counter()
    unread = len(partitions)
    by_key = [(orders.key(number), orders.value(number)) for number in range(int(count))]
    while unread > 0:
        record = consumer.poll(30)
        if record is None:
            sys.exit("nothing came for 30 s")
        if record.error():
            unread -= 1  # its end
            continue
        read = (orders.read_key(record.key(), of_key), orders.read(record.value(), of_value))
        number = int((read[1]["order_id"] if isinstance(read[1], dict) else read[1].order_id)[6:])
        if read != by_key[number]:
            sys.exit(f"order {number} is {read}, and was {by_key[number]}")
        expected[number] += 1
    wrong = {number for number in range(int(count)) if expected[number] != 2}
    print(f"{len(expected)} orders, {len(wrong)} of them not twice")


main()

// Speaks to a broker as its administrator. Reads one request a line, and answers each with a line.
//   acls ARGUMENTS    what kafka-acls.sh does with them: "done"; it ends where that fails
//   at GROUP TOPIC    of partition 0: the group's offset, -1 for none, and the end of the topic
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.tools.AclCommand;

public class KafkaTool {
  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // what the commands say
    String server = arguments[0];
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
      for (String line; (line = requests.readLine()) != null; ) {
        String[] words = line.split(" ");
        if (words[0].equals("acls")) {
          AclCommand.main(
              Stream.concat(
                      Stream.of("--bootstrap-server", server), Arrays.stream(words).skip(1))
                  .toArray(String[]::new));
          answers.println("done");
        } else {
          TopicPartition place = new TopicPartition(words[2], 0);
          var offsets =
              admin.listConsumerGroupOffsets(words[1]).partitionsToOffsetAndMetadata().get();
          var offset = offsets.get(place);
          var end = admin.listOffsets(Map.of(place, OffsetSpec.latest())).partitionResult(place);
          answers.println((offset == null ? -1 : offset.offset()) + " " + end.get().offset());
        }
      }
    }
  }
}

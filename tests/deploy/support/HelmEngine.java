// Drives Helm's own engine. Reads one request a line, fields split by tabs, and answers with a line
// "ok LENGTH" or "error LENGTH" and that many bytes of text.
//   template CHART NAME NAMESPACE VALUES_FILE...
//   lint CHART
//   package CHART FOLDER
import com.marcnuri.helm.Helm;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

public class HelmEngine {
  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);  // whatever the libraries say
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = requests.readLine()) != null; ) {
      String status = "ok";
      String text;
      try {
        text = answer(line.split("\t"));
      } catch (Throwable error) {
        status = "error";
        text = String.valueOf(error.getMessage());
      }
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      answers.println(status + " " + bytes.length);
      answers.write(bytes);
      answers.flush();
    }
  }

  private static String answer(String[] words) throws Exception {
    Helm helm = new Helm(Path.of(words[1]));
    switch (words[0]) {
      case "template":
        var template = helm.template().withName(words[2]).withNamespace(words[3]);
        for (int i = 4; i < words.length; ++i) template.withValuesFile(Path.of(words[i]));
        return template.call();
      case "lint":
        var result = helm.lint().strict().call();
        String messages = String.join("\n", result.getMessages());
        if (result.isFailed()) throw new IllegalArgumentException(messages);
        return messages;
      case "package":
        helm.packageIt().withDestination(Path.of(words[2])).call();
        return "";
      default:
        throw new IllegalArgumentException("no such request: " + words[0]);
    }
  }
}

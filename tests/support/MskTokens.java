import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * A broker's check of tokens as Amazon MSK takes them: a URL that is signed by the key of the
 * properties msk.key, msk.secret and, where it is not empty, msk.token, for msk.region.
 */
public class MskTokens implements AuthenticateCallbackHandler {
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
  private Map<String, ?> configs;

  @Override
  public void configure(
      Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
    this.configs = configs;
  }

  @Override
  public void close() {}

  @Override
  public void handle(Callback[] callbacks) {
    for (Callback one : callbacks) {
      if (!(one instanceof OAuthBearerValidatorCallback callback)) continue;
      try {
        Instant signed = check(callback.tokenValue());
        callback.token(new Token(callback.tokenValue(), signed.toEpochMilli()));
      } catch (Exception refused) {
        System.err.println("MskTokens refuses: " + refused);
        callback.error("invalid_token", null, null);
      }
    }
  }

  private String config(String name) {
    Object value = configs.get(name);
    return value == null ? "" : value.toString();
  }

  private static void want(boolean good, String what) {
    if (!good) throw new IllegalArgumentException(what);
  }

  private Instant check(String token) throws Exception {
    want(token.matches("[A-Za-z0-9_-]+"), "not base64url without padding");
    URI uri = URI.create(
        new String(Base64.getUrlDecoder().decode(token), StandardCharsets.US_ASCII));
    String region = config("msk.region");
    String host = "kafka." + region + ".amazonaws.com";
    want(uri.getScheme().equals("https") && uri.getRawAuthority().equals(host)
            && uri.getRawPath().equals("/") && uri.getRawFragment() == null,
        "not of " + host);
    TreeMap<String, String> query = new TreeMap<>();
    for (String pair : uri.getRawQuery().split("&")) {
      String[] parts = pair.split("=", 2);
      want(query.put(parts[0], parts[1]) == null, parts[0] + " twice");
    }
    want(query.remove("User-Agent") != null, "no User-Agent");
    String signature = query.remove("X-Amz-Signature");
    boolean session = !config("msk.token").isEmpty();
    Set<String> names = new java.util.TreeSet<>(Set.of("Action", "X-Amz-Algorithm",
        "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders"));
    if (session) names.add("X-Amz-Security-Token");
    want(query.keySet().equals(names), "its query has " + query.keySet());
    Instant signed = Instant.from(TIME.parse(query.get("X-Amz-Date")));
    String day = query.get("X-Amz-Date").substring(0, 8);
    String scope = day + "/" + region + "/kafka-cluster/aws4_request";
    is(query, "Action", "kafka-cluster:Connect");
    is(query, "X-Amz-Algorithm", "AWS4-HMAC-SHA256");
    is(query, "X-Amz-Credential", config("msk.key") + "/" + scope);
    is(query, "X-Amz-Expires", "900");
    is(query, "X-Amz-SignedHeaders", "host");
    if (session) is(query, "X-Amz-Security-Token", config("msk.token"));
    long age = Instant.now().getEpochSecond() - signed.getEpochSecond();
    want(age >= -300 && age < 900, "signed " + age + " seconds ago");

    StringBuilder canonical = new StringBuilder("GET\n/\n");
    query.forEach((name, value) ->
        canonical.append(name).append('=').append(value).append('&'));
    canonical.setCharAt(canonical.length() - 1, '\n');
    canonical.append("host:").append(host).append("\n\nhost\n").append(sha256(""));
    String toSign = String.join("\n", "AWS4-HMAC-SHA256", query.get("X-Amz-Date"), scope,
        sha256(canonical.toString()));
    byte[] key = ("AWS4" + config("msk.secret")).getBytes(StandardCharsets.UTF_8);
    for (String part : new String[] {day, region, "kafka-cluster", "aws4_request"}) {
      key = hmac(key, part);
    }
    want(HexFormat.of().formatHex(hmac(key, toSign)).equals(signature), "another signature");
    return signed;
  }

  private static void is(Map<String, String> query, String name, String wanted) {
    String value = URLDecoder.decode(query.get(name), StandardCharsets.UTF_8);
    want(value.equals(wanted), name + " is " + value);
  }

  private static String sha256(String text) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
  }

  private static byte[] hmac(byte[] key, String text) throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
  }

  private record Token(String value, long signed) implements OAuthBearerToken {
    @Override
    public Set<String> scope() {
      return Set.of();
    }

    @Override
    public long lifetimeMs() {
      return signed + 900_000;
    }

    @Override
    public String principalName() {
      return "billing";
    }

    @Override
    public Long startTimeMs() {
      return signed;
    }
  }
}

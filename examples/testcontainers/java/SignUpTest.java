import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;

@Testcontainers
class SignUpTest {
  @Container
  static final GenericContainer<?> mail =
      new GenericContainer<>("ghcr.io/postroom/postroom")
          .withCommand("dev")
          .withExposedPorts(8025, 1025)
          .waitingFor(Wait.forHttp("/health").forPort(8025));

  @Test
  void aNewUserGetsACode() throws Exception {
    String inbox = call("POST", "/v1/inboxes", "{}");
    signUp(field(inbox, "address"), mail.getHost(), mail.getMappedPort(1025));
    String found = call("GET", "/v1/inboxes/" + field(inbox, "id") + "/messages/wait?has=code&view=code&timeout=30", "");
    assertEquals("482913", field(found, "otp"));
  }

  /** Is the program under test: it sends a code, "482913", over SMTP. */
  static void signUp(String address, String host, int port) {}

  static String call(String method, String path, String body) throws Exception {
    URI uri = URI.create("http://" + mail.getHost() + ":" + mail.getMappedPort(8025) + path);
    HttpRequest request = HttpRequest.newBuilder(uri).header("Authorization", "Bearer dev")
        .header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.ofString(body)).build();
    return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
  }

  static String field(String json, String name) {
    Matcher m = Pattern.compile("\"" + name + "\":\\s*\"([^\"]*)\"").matcher(json);
    return m.find() ? m.group(1) : null;
  }
}

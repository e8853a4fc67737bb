# Submits the mail that the environment describes, with Action Mailer.
require "action_mailer"
require "json"

MAIL = JSON.parse(ENV["MAIL"])

ActionMailer::Base.delivery_method = :smtp
ActionMailer::Base.smtp_settings = {
  address: ENV["HOST"], port: ENV["PORT"].to_i, user_name: "api", password: ENV["KEY"], authentication: :plain,
  tls: ENV["SECURE"] == "1", enable_starttls_auto: ENV["SECURE"] != "1", openssl_verify_mode: OpenSSL::SSL::VERIFY_NONE,
  return_response: true,
}

class Mailer < ActionMailer::Base
  def one
    (MAIL["files"] || []).each do |f|
      attachments[f["name"]] = ("0123456789abcdef" * (f["size"] / 16 + 1))[0, f["size"]]
    end
    mail(from: MAIL["from"], to: MAIL["to"], bcc: MAIL["bcc"], subject: MAIL["subject"]) do |format|
      format.text { render plain: MAIL["text"] }
      format.html { render html: MAIL["html"].html_safe } if MAIL["html"]
    end
  end
end

begin
  puts Mailer.one.deliver_now! ? "250 sent" : "refused: no mail"
rescue StandardError => e
  puts "refused: #{e.class} #{e.message}"
end

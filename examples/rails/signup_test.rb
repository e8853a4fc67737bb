# A mailer of Rails, and a test of it. In an application, the two settings belong into
# config/environments/test.rb, as config.action_mailer.
require "action_mailer"
require "json"
require "minitest/autorun"
require "net/http"

ActionMailer::Base.delivery_method = :smtp # Rails sets :test there, which sends nothing
ActionMailer::Base.smtp_settings = { address: ENV.fetch("SMTP_HOST", "127.0.0.1"), port: ENV.fetch("SMTP_PORT", "1025").to_i }

# The program under test: it sends a code to each new user.
class SignUpMailer < ActionMailer::Base
  def code
    mail(from: "Shop <noreply@shop.example>", to: params[:to], subject: "Welcome", body: "Your verification code is 482913.")
  end
end

class SignUpTest < Minitest::Test
  API = URI(ENV.fetch("POSTROOM_URL", "http://127.0.0.1:8025"))
  HEADERS = { "Authorization" => "Bearer dev", "Content-Type" => "application/json" }.freeze

  def call(request)
    JSON.parse(Net::HTTP.start(API.host, API.port, read_timeout: 60) { |http| http.request(request) }.body)
  end

  def test_a_new_user_gets_a_code
    inbox = call(Net::HTTP::Post.new("/v1/inboxes", HEADERS).tap { |r| r.body = "{}" })
    SignUpMailer.with(to: inbox["address"]).code.deliver_now
    found = call(Net::HTTP::Get.new("/v1/inboxes/#{inbox["id"]}/messages/wait?has=code&view=code&timeout=30", HEADERS))
    assert_equal "482913", found["code"]["otp"]
  end
end

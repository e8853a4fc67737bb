<?php

namespace Tests\Feature;

use Illuminate\Support\Facades\Http;
use Illuminate\Support\Facades\Mail;
use Tests\TestCase;

// Put this file into tests/Feature. phpunit.xml of a new application sets MAIL_MAILER=array,
// which sends nothing: replace it by smtp, with MAIL_HOST=127.0.0.1 and MAIL_PORT=1025.
class SignUpTest extends TestCase
{
    // The program under test: it sends a code to each new user.
    private function signUp(string $address): void
    {
        Mail::raw('Your verification code is 482913.', function ($mail) use ($address) {
            $mail->from('noreply@shop.example', 'Shop')->to($address)->subject('Welcome');
        });
    }

    public function test_a_new_user_gets_a_code(): void
    {
        $postroom = Http::baseUrl(getenv('POSTROOM_URL') ?: 'http://127.0.0.1:8025')->withToken('dev')->timeout(60);
        $inbox = $postroom->post('/v1/inboxes', (object) [])->json();
        $this->signUp($inbox['address']);
        $found = $postroom->get("/v1/inboxes/{$inbox['id']}/messages/wait", ['has' => 'code', 'view' => 'code', 'timeout' => 30])->json();
        $this->assertSame('482913', $found['code']['otp']);
    }
}

<?php
// Submits the mail that the environment describes, with PHPMailer.
use PHPMailer\PHPMailer\Exception;
use PHPMailer\PHPMailer\PHPMailer;

foreach (['Exception', 'PHPMailer', 'SMTP'] as $class) {
    require "libphp-phpmailer/src/$class.php";
}

$mail = json_decode(getenv('MAIL'), true);
$m = new PHPMailer(true);
$m->isSMTP();
$m->Host = getenv('HOST');
$m->Port = (int) getenv('PORT');
$m->SMTPSecure = getenv('SECURE') === '1' ? PHPMailer::ENCRYPTION_SMTPS : PHPMailer::ENCRYPTION_STARTTLS;
$m->SMTPOptions = ['ssl' => ['verify_peer' => false, 'verify_peer_name' => false, 'allow_self_signed' => true]];
$m->SMTPAuth = true;
$m->Username = 'api';
$m->Password = getenv('KEY');
$m->SMTPDebug = 2; // shows the replies of the server
$m->Debugoutput = fn ($line) => print(trim($line) . "\n");
$m->CharSet = 'UTF-8';
try {
    [$from] = PHPMailer::parseAddresses($mail['from'], false);
    $m->setFrom($from['address'], $from['name']);
    foreach ($mail['to'] as $to) {
        $m->addAddress($to);
    }
    foreach ($mail['bcc'] ?? [] as $to) {
        $m->addBCC($to);
    }
    $m->Subject = $mail['subject'];
    $m->Body = $mail['html'] ?? $mail['text'];
    if (isset($mail['html'])) {
        $m->isHTML();
        $m->AltBody = $mail['text'];
    }
    foreach ($mail['files'] ?? [] as $f) {
        $m->addStringAttachment(substr(str_repeat('0123456789abcdef', intdiv($f['size'], 16) + 1), 0, $f['size']), $f['name']);
    }
    $m->send();
    echo "250\n";
} catch (Exception $e) {
    echo 'refused: ', $e->getMessage(), "\n";
}

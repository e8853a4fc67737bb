package bounce

// bounceSubjects occur in the subjects of bounces, in lower case.
var bounceSubjects = []string{
	"undeliver", "undelivered", "non-deliver", "nondeliver", "not delivered", "could not be delivered", "couldn't be delivered", "unable to deliver",
	"returned mail", "returned to sender", "return to sender", "failure notice", "failure notification", "delivery failure", "delivery failed",
	"delivery status", "delivery notification", "delivery problem", "delivery error", "delivery has failed", "mail delivery", "delivery delayed",
	"delayed mail", "delivery delay", "mail system error", "error sending your mail", "errors from", "message rejected", "mail returned",
	"[bounce]", "warning: could not send", "warning: message", "not read: undeliverable", "failed mail", "failed delivery", "bounced mail", "mail failure",
	"unzustellbar", "nicht zustellbar", "unzustellbarkeit", "nicht zugestellt", "zustellung fehlgeschlagen", "non remis", "échec de la remise",
	"échec de la livraison", "non distribué", "retour à l'expéditeur", "no se puede entregar", "no entregado", "no se ha podido entregar",
	"error en la entrega", "entrega fallida", "mancato recapito", "impossibile recapitare", "non recapitabile", "errore di consegna",
	"não entregue", "não foi possível entregar", "falha na entrega", "onbestelbaar", "niet bezorgd", "bezorging mislukt", "nie dostarczono",
	"nie można dostarczyć", "niedostarcz", "kan inte levereras", "ej levererat", "kunne ikke leveres", "ikke leveret", "nedoručiteln",
	"nedoručen", "teslim edilemedi", "iletilemedi", "недостав", "не доставлен", "ошибка доставки", "не вдалося доставити", "не доставлено",
	"配信不能", "配信できません", "送信できません", "送達できません", "エラー通知", "退信", "投递失败", "无法投递", "無法傳遞", "未送达", "전송 실패", "배달 실패", "반송",
}

// bounceWords occur in the text of bounces, in lower case and with single
// spaces.
var bounceWords = []string{
	"could not be delivered", "couldn't be delivered", "cannot be delivered", "can't be delivered", "can not be delivered", "was not delivered",
	"wasn't delivered", "not be delivered", "not delivered", "unable to deliver", "not able to deliver", "wasn't able to deliver", "error delivering",
	"trouble delivering", "did not reach the following", "following address(es) failed", "address failed", "addresses failed", "following recipient(s)",
	"fatal errors", "permanent error", "permanent failure", "failed permanently", "delivery to the following", "delevery to the following",
	"undeliverable", "delivery failed", "delivery has failed", "delivery failure", "delivery attempts", "transcript of session", "error has occurred while attempting to deliver",
	"error occurred while trying to deliver", "recipients was rejected", "rejected recipient", "returned permanent errors", "mailbox exceeds", "unknown user",
	"user unknown", "final delivery userid", "failure reasons", "delivery failed", "did not receive this message", "no valid recipients", "invalid user address",
	"message has not been delivered", "your message was rejected", "has been delayed", "not yet been delivered", "warning message only",
	"nicht zugestellt werden", "nicht ausgeliefert", "konnte nicht zugestellt", "n'a pas pu être remis", "n'a pas été remis", "n'a pu être", "n'est pas parvenu",
	"no se ha podido entregar", "no pudo ser entregado", "no se pudo entregar", "impossibile recapitare", "non è stato possibile", "non può essere recapitato",
	"não pôde ser entregue", "não foi entregue", "não foi possível entregar", "kon niet worden bezorgd", "niet worden afgeleverd", "nie mogła zostać dostarczona",
	"nie może być dostarczona", "kunde inte levereras", "kunne ikke leveres", "nemohla být doručena", "iletilemedi", "teslim edilemedi", "не может быть доставлено",
	"не было доставлено", "не удалось доставить", "送信できませんでした", "配信できませんでした", "送達できませんでした", "無法傳送", "无法投递", "无法送达", "未能送达",
	"被退回", "배달하지 못했습니다", "전송할 수 없습니다", "không thể gửi", "tidak dapat dikirim",
}

// delayWords mean that the server is still retrying.
var delayWords = []string{
	"warning message only", "this is a warning only", "warning only", "has been delayed", "delivery delayed", "delayed mail", "still being retried",
	"will be retried", "not yet been delivered", "not been delivered yet", "will continue to try", "will keep trying", "continue trying", "(delay)",
	"do not need to resend", "not need to resend", "temporarily delayed", "delivery attempts will continue", "in the queue", "message is delayed",
	"verzögert", "weiterhin versucht", "retardé", "retrasad", "ritardat", "atrasad", "vertraagd", "opóźni", "задержан", "遅延", "延迟", "延遲",
}

// finalWords mean that the server has stopped retrying.
var finalWords = []string{
	"failed permanently", "permanent error", "permanent failure", "permanent fatal", "giving up", "given up", "not going to try again", "could not be delivered to one or more",
	"has been returned", "was returned", "delivery has failed", "returned below could not", "will not be retried", "no further attempts", "permanently failed",
}

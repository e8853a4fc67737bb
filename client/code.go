package client

import "github.com/postroom/postroom/gen"

// Code is the error code of a response. It implements error, so that errors.Is
// can compare it with the error of a call. A newer server may return codes that
// are not listed here.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Error codes of this version.
const (
	ErrInvalidRequest          = Code(gen.ErrorCodeInvalidRequest)
	ErrInvalidJSON             = Code(gen.ErrorCodeInvalidJson)
	ErrContentRequired         = Code(gen.ErrorCodeContentRequired)
	ErrTemplateConflict        = Code(gen.ErrorCodeTemplateConflict)
	ErrTemplateVariableMissing = Code(gen.ErrorCodeTemplateVariableMissing)
	ErrUnauthorized            = Code(gen.ErrorCodeUnauthorized)
	ErrInsufficientScope       = Code(gen.ErrorCodeInsufficientScope)
	ErrOriginNotAllowed        = Code(gen.ErrorCodeOriginNotAllowed)
	ErrIPNotAllowed            = Code(gen.ErrorCodeIPNotAllowed)
	ErrRecipientNotAllowed     = Code(gen.ErrorCodeRecipientNotAllowed)
	ErrSendingPaused           = Code(gen.ErrorCodeSendingPaused)
	ErrRecipientBlocked        = Code(gen.ErrorCodeRecipientBlocked)
	ErrSendingStopped          = Code(gen.ErrorCodeSendingStopped)
	ErrDomainNotVerified       = Code(gen.ErrorCodeDomainNotVerified)
	ErrPlanLimitReached        = Code(gen.ErrorCodePlanLimitReached)
	ErrLinkInvalid             = Code(gen.ErrorCodeLinkInvalid)
	ErrLoopDetected            = Code(gen.ErrorCodeLoopDetected)
	ErrInboxExpired            = Code(gen.ErrorCodeInboxExpired)
	ErrNotFound                = Code(gen.ErrorCodeNotFound)
	ErrRouteNotFound           = Code(gen.ErrorCodeRouteNotFound)
	ErrMethodNotAllowed        = Code(gen.ErrorCodeMethodNotAllowed)
	ErrRequestTimeout          = Code(gen.ErrorCodeRequestTimeout)
	ErrAddressTaken            = Code(gen.ErrorCodeAddressTaken)
	ErrDomainTaken             = Code(gen.ErrorCodeDomainTaken)
	ErrContactExists           = Code(gen.ErrorCodeContactExists)
	ErrDraftNotPending         = Code(gen.ErrorCodeDraftNotPending)
	ErrClaimLost               = Code(gen.ErrorCodeClaimLost)
	ErrDraftChanged            = Code(gen.ErrorCodeDraftChanged)
	ErrTestModeMismatch        = Code(gen.ErrorCodeTestModeMismatch)
	ErrNotCancellable          = Code(gen.ErrorCodeNotCancellable)
	ErrIdempotencyInProgress   = Code(gen.ErrorCodeIdempotencyInProgress)
	ErrWebhookDisabled         = Code(gen.ErrorCodeWebhookDisabled)
	ErrMessageExpired          = Code(gen.ErrorCodeMessageExpired)
	ErrPayloadTooLarge         = Code(gen.ErrorCodePayloadTooLarge)
	ErrUnsupportedMediaType    = Code(gen.ErrorCodeUnsupportedMediaType)
	ErrRecipientSuppressed     = Code(gen.ErrorCodeRecipientSuppressed)
	ErrIdempotencyKeyReused    = Code(gen.ErrorCodeIdempotencyKeyReused)
	ErrRateLimited             = Code(gen.ErrorCodeRateLimited)
	ErrDailyLimitReached       = Code(gen.ErrorCodeDailyLimitReached)
	ErrBudgetExceeded          = Code(gen.ErrorCodeBudgetExceeded)
	ErrMonthlyLimitReached     = Code(gen.ErrorCodeMonthlyLimitReached)
	ErrInternalError           = Code(gen.ErrorCodeInternalError)
	ErrUnavailable             = Code(gen.ErrorCodeUnavailable)
)

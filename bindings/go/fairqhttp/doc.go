// Package fairqhttp puts a limit in front of an http.Handler.
//
//	limit := fairqhttp.Limit(chat, fairqhttp.MaxWait(15*time.Second))
//	http.Handle("/ask", limit(askHandler))
//
// A request waits in line for a permit, which is held until the handler has returned: for as long as it streams, too.
// Who disconnects while waiting leaves the line. The handler finds the permit by [PermitFrom].
//
// # Refusals
//
// They are JSON, {"error": "queue_full", "message": "…", "retry_after": 7}; for who accepts text/event-stream, and with
// [Positions], the SSE event rejected with the same as its data.
//
//	error                                               status  Retry-After
//	queue_full, timed_out                               429     as the error says, or 5 s; whole seconds, at least 1
//	closed, unavailable, overloaded, no_such_limiter,
//	configuration, server, revoked, permit_lost         503     the same
//	impossible                                          400     none: trying again does not help
//	cancelled                                           499     none: the client has gone, and nobody reads it
//	internal                                            500     none: a mistake in the program
//
// What a 503 or 500 could tell of the inside goes to the log (see [ErrorLog]), and not to the client.
//
// # Disconnects
//
// With HTTP/1 net/http notices that a client has gone only when the request's body has been read. So the middleware
// reads bodies of a known, small length before the request joins the line (see [ReadAhead]). Larger ones, and those of
// unknown length, stay where they are: then a disconnect is noticed when the handler has read on.
//
// # A permit that is lost
//
// Its process was cut off for longer than the lease, or it was held too long: the slot is another's. The context of the
// request ends then, and its handler should return. After it has, the client is told 503 if the response has not begun;
// otherwise the connection is cut, so that nobody takes half an answer for a whole one. [IgnoreLoss] switches that off.
package fairqhttp

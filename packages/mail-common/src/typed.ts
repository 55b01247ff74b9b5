/** Finds what the sender of a mail typed: the text above the quote and the signature. */
import { quoteStart } from './quote-start.ts'

/** Longer than an answer to an approval with its feedback. */
const TYPED_CHARS_MAX = 5000
/** The line before a signature (RFC 3676, section 4.3), and the ones that mail programs of phones write. */
const SIGNATURE =
  /^(?:-- ?|(?:Sent (?:from|via|with)|Get Outlook for|Holen Sie sich Outlook|Obtenir Outlook|Von meinem|Gesendet (?:von|mit)|Envoyé (?:de|depuis)|Télécharger Outlook|Enviado desde|Enviado d[eo]|Obtener Outlook|Inviato da|Verzonden (?:vanaf|met)|Skickat från|Sendt fra|Lähetetty|Wysłane? z|Отправлено (?:с|из)|发自我的|從我的) ?.{1,60}|.{1,40}から送信)$/mu

/** A subject that a mail program made from the mail which it answers. */
const REPLY = /^(?:re|aw|sv|antw|fwd?|wg)\s{0,5}:/i

/**
 * Returns the subject of a mail whose sender typed no text, unless it is the subject of the mail that it answers, which somebody else may
 * have written.
 */
export function typedIn(subject: string, body: string): string {
  const ends = [quoteStart(body), body.search(SIGNATURE)].filter((end) => end >= 0)
  const typed = body.slice(0, Math.min(TYPED_CHARS_MAX, ...ends)).trim()
  return typed || (REPLY.test(subject) ? '' : subject)
}

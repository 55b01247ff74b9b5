/** Finds what the sender of a mail typed: the text above the quote, or below it, without the signature. */
import { isCopiedSubject } from './copied-subject.ts'
import { ownBelow } from './own-below.ts'
import { quoteStart } from './quote-start.ts'

/** Longer than an answer to an approval with its feedback. */
const TYPED_CHARS_MAX = 5000
/** The line before a signature (RFC 3676, section 4.3). */
const DELIMITER = /^-- ?$/
/** The lines that mail programs of phones write, some with an excuse. A longer sentence is the sender's own. */
const FROM_PHONE =
  /^(?:(?:Sent (?:from|via|with)|Get Outlook for|Hanki Outlook|Holen Sie sich Outlook|Obtenir Outlook|Von meinem|Gesendet (?:von|mit)|Envoyé (?:de|depuis)|Télécharger Outlook|Enviado desde|Enviado d[eo]|Obtener Outlook|Inviato da|Verzonden (?:vanaf|met)|Skickat från|Sendt fra|Lähetetty|Wysłane? z|Отправлено (?:с|из)|发自我的|從我的|Diese Nachricht wurde von meinem) ?[^,]{1,60}?(?:<https?:[^\s<>]{1,200}>| \(https?:[^\s()]{1,500}\)|, (?:please |kindly |sorry|excuse|apologies).{0,60})?|From [Mm]y [Ii][Pp]hone(?: \S{1,10})?|.{1,40}から送信|[(<]{1,2}[Ss]ent (?:from|by|via|with) [^()<>]{1,60}[)>]{1,2})$/u
/** The names of devices and programs in the lines of other languages, in which the words alone could be the sender's. */
const DEVICE = /i(?:Phon|Pad|OS)|Android|Galaxy|Samsung|Huawei|Xiaomi|Redmi|Outlook|Yahoo|Gmail/i
const SENT_FROM =
  /^(?:أُ?رسلت? من|Trimis de pe|Verzonden vanuit|Wysłan[oye] z|Pobierz|Odesláno z|Odoslané z|Στάλθηκε από|נשלח מ|ส่งจาก|Надіслано з|Изпратено от|Đã gửi từ|Dikirim dari|Poslano (?:s|z)|Enviat des del?|Envoyé à partir d|Descargar|Obt(?:er|enir)|Baixar|Scarica|Загрузить|Завантажити|获取|取得|Skaffa|Hämta|Hent|Stáhnout|Stiahnuť|Téléchargez) ?.{1,80}$|^.{1,50}(?:küldve|beszerzése|[dt][ae]n gönderildi|에서 보냄|에서 보냈습니다|다운로드|を入手|downloaden|herunterladen)(?:<https?:[^\s<>]{1,200}>)?$/u
const LINE_CHARS_MAX = 300

const isOfPhone = (line: string): boolean =>
  FROM_PHONE.test(line) || (line.length <= LINE_CHARS_MAX && DEVICE.test(line) && SENT_FROM.test(line))

/**
 * Returns the sender's text above the first quote, else the text below or between the quotes of a body that keeps their marks (see
 * `keepsMarks`). Returns the subject of a mail whose sender typed no text, unless it is the subject of the mail that it answers, which
 * another person may have written.
 */
export function typedIn(subject: string, body: string, marksAreKept = false, hasAttachedMail = false): string {
  const quoted = quoteStart(body)
  const above = typedOf(quoted < 0 ? body : body.slice(0, quoted))
  const below = above === '' && marksAreKept ? ownBelow(body).map(({ from, to }) => body.slice(from, to)) : []
  return above || typedOf(below.join('\n')) || (isCopiedSubject(subject, quoted >= 0 || hasAttachedMail) ? '' : subject)
}

const typedOf = (text: string): string => aboveSignature(text.slice(0, TYPED_CHARS_MAX)).trim()

/** Returns the text above the first signature. The line of a phone is one if nothing of the sender follows in its paragraph. */
function aboveSignature(text: string): string {
  const lines = text.split('\n')
  const first = lines.findIndex((line, index) => {
    if (DELIMITER.test(line)) return true
    if (!isOfPhone(line.trim())) return false
    const below = lines.slice(index).findIndex((each) => !isOfPhone(each.trim()))
    return below < 0 || (below > 0 && lines[index + below]?.trim() === '')
  })
  return first < 0 ? text : lines.slice(0, first).join('\n')
}

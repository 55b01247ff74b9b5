/** Finds where the words of others begin in the text of a mail. */

/** A line that begins with `>`, or a rule with a title. */
const MARK = /^(?:[ \t]{0,4}>|\*?-{2,20} ?(?:[^\n\r\u2028\u2029-]|-(?=[^\s*-])){3,60}(?: --- [^\n\r\u2028\u2029-]{3,40})? ?-{2,20}\*?$)/
/** A rule without a title, which senders write between their own words, too. */
const BARE_RULE = /^[ \t]{0,4}[-_=]{2,80}$/
/** The rule of Outlook, which stands directly above the headers of the quoted mail. */
const OUTLOOK_RULE = /^_{32}$/
/** A line of the footer of a mailing list. */
const LIST_FOOTER = /\bmailing list$|\/mailman\/listinfo\//i
/** The end of a line within the angle brackets of a link or of an address, which some programs close on the next line. */
const OPEN_BRACKET = /<(?:https?:[^\s<>]{0,900}|[^\s<>@]{1,64}@[^\s<>@]{1,190})$/
const FORWARDED =
  /^(?:(?:Begin )?forwarded message|Anfang der weitergeleiteten (?:E-Mail|Nachricht)|Début du message (?:réexpédié|transféré)|Inicio del mensaje reenviado|Inizio messaggio inoltrato|Begin doorgestuurd bericht|Início da mensagem (?:re)?encaminhada|Vidarebefordrat (?:brev|mejl)|Začátek přeposílané zprávy|Start på videresendt besked|Välitetty viesti alkaa|Započni proslijeđenu poruku|Továbbított levél kezdete|Videresendt melding|Początek przekazywanej wiadomości|Începe mesajul redirecționat|Začiatok preposlanej správy|İleti başlangıcı|Початок листа, що пересилається|Начало переадресованного сообщения|転送されたメッセージ|开始转发的邮件)\s?[:：]$/i

/** The beginning of the line before a quote that mail programs write, in the usual languages. */
const ATTRIBUTION =
  /^(?:On|Am|Le|El|Il|Em|Op|Den|Dnia|W dniu|Dne|Dana|På|Vào|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|^(?:[Пп]н|[Вв]т|[Сс]р|[Чч]т|[Пп]т|[Сс]б|[Вв]с|[Оо]т|בתאריך|في|بتاريخ)[\s,.]|^\d{1,4}[./年-]/
const WROTE =
  /(?:\b(?:wrote|writes|said|schrieb|schreibt|escribió|escribio|ha scritto|scrisse|schreef|escreveu|skrev|skriver|kirjoitti|pisze|napisał(?:a|\(a\))?|napsal(?:a|\(a\))?|yazdı|scris|wrote via)|a écrit|пишет?|(?:на)?писал(?:а|\(а\))?|(?<!\p{L})írta|napisana przez|쓴 글|έγραψε|写道|寫道|書きました|のメール|작성|đã viết|(?<![א-ת])(?:מאת|כתב)(?![א-ת])|(?<![ء-ي])(?:كتبت?|تمت كتابة)(?![ء-ي]))/iu
const ADDRESS = /[^\s<>@"]{1,64}@[^\s<>@"]{1,190}/
const DATE = /\b\d{1,2}[:.]\d{2}\b|\b(?:19|20)\d{2}\b|\d{4}年/
/** An address in brackets, or one at the end. */
const BRACKETED = /[<(][^\s<>()@"]{1,64}@[^\s<>()@"]{1,190}[>)]|@[^\s<>@"]{1,190}[:：]$/
const TIME = /\p{Nd}{1,2}[:.]\p{Nd}{2}/u
/** The numbers of a day, a year and a time, or more. */
const STAMP_NUMBERS_MIN = 4
const COLON = /[:：][ \t]{0,4}$/
/** A date, for lines that begin with it. */
const BARE_DATE = /^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b/
/** A date with a time and its zone, as Gmail wrote it in several languages. */
const DATE_WITH_ZONE = /^\d{4}-\d{2}-\d{2} \d{1,2}:\d{2} GMT[+-]\d{1,2}:\d{2} \S/
/** The attribution of a forum. */
const POSTED_BY = /^Posted by \S.{0,100} on \d{1,4}[./-]\d{1,2}[./-]\d{1,4}$/
/** The attribution of a mailing list that names no address. */
const VIA_LIST = /\S via \S.{0,100} wrote:$/
const RULE = /^-{2,20} .{3,300} -{2,20}$/
/** The headers of a mail on one line. */
const FLAT_HEADERS = /^Date: .{10,60} From: \S{3,200} .{0,200}Subject: |^From: .{0,80}[^\s<>@]{1,64}@[^\s<>@]{1,190}>? (?:Date|Sent): /
/** An attribution that begins with a time or a day, and ends with an address and without a verb. */
const WITHOUT_VERB = /^(?:\d{1,2}:\d{2} [AP]M|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day), .{5,200} <[^\s<>@]{1,64}@[^\s<>@]{1,190}>:$/
/** An attribution that ends without a colon. */
const WITHOUT_COLON = /^On .{8,200} <[^\s<>@]{1,64}@[^\s<>@]{1,190}> wrote$/
const BEHIND = /-{0,20} ?\bOn (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), /
const ATTRIBUTION_CHARS_MAX = 400
const ATTRIBUTION_LINES_MAX = 4

/** A line of the headers that mail programs put before a mail which they quote or forward. */
const HEADER = /^[ \t\u00a0]{0,20}[*_]{0,2}([^\s:：*_][^:：*_\n]{0,24}?)[*_]{0,2}\s{0,2}[:：][*_]{0,2}\s{0,20}(\S.{0,999})$/u
const FROM =
  /^(?:from|von|de|da|van|fra|från|od|expéditeur|lähettäjä|kimden|gönderen|feladó|šalje|expeditorul|de la|saatja|nadawca|від(?: кого)?|odesílatel|remitente|mittente|afzender|от(?: кого)?|отправитель|από|差出人|送信者|送信元|发件人|發件人|寄件者|寄件人|보낸 사람)$/iu
const SENT =
  /^(?:sent|date|gesendet|datum|envoyé|inviato|data|verzonden|enviado(?: el| em)?|fecha|skickat|sendt|dato|wysłano|odesláno|lähetetty|gönderilen|message du|отправлено|дата|送信日時|日付|发送时间|發送時間|日期|보낸 날짜)$/iu
/** The number of header lines that make a block in a language whose words are not known. */
const HEADERS_MIN = 4

/**
 * Returns the index at which the first quoted or forwarded text begins; -1 without any. It knows the marks that mail programs write: a
 * sender who pastes text without a mark vouches for it.
 */
export const quoteStart = (text: string): number => firstQuote(linesOf(text))?.at ?? -1

export interface FoundQuote {
  /** Where it begins, with its attribution. */
  readonly at: number
  /** The index of the first line that the mark begins; undefined for a quote or a forward whose lines have no marks. */
  readonly marked?: number
}

/** Finds the first quoted or forwarded text. */
export function firstQuote(lines: readonly Line[]): FoundQuote | undefined {
  for (const [index, { at, line }] of lines.entries()) {
    if (beginsHeaders(lines, index)) return { at: lines[ruleAbove(lines, index)]?.at ?? at }
    if (FORWARDED.test(line) || isOneLine(line) || isBeginningRule(lines, index)) return { at }
    if (MARK.test(line) && !isEndOfBracket(lines, index))
      return { at: lines[attributionAbove(lines, index)]?.at ?? at, ...markedFrom(lines, index) }
    if (!COLON.test(line)) continue
    // Some programs put the attribution behind the last words of the sender.
    const behind = WROTE.test(line) ? line.search(BEHIND) : -1
    if (behind > 0) return { at: at + behind, ...markedFrom(lines, index + 1) }
    const first = beginningOfAttribution(lines, index)
    if (first !== undefined) return { at: lines[first]?.at ?? at, ...markedFrom(lines, index + 1) }
  }
  return undefined
}

/** The line with the first mark, if this line has it, or the next one below an empty line. */
function markedFrom(lines: readonly Line[], index: number): Pick<FoundQuote, 'marked'> {
  const marked = lines[index]?.line === '' ? index + 1 : index
  return lines[marked]?.line.startsWith('>') ? { marked } : {}
}

/** Whether a line begins with the `>` that ends a link or an address of the line above. */
const isEndOfBracket = (lines: readonly Line[], index: number): boolean =>
  lines[index]?.line.startsWith('>') === true && OPEN_BRACKET.test(lines[index - 1]?.line ?? '')

/** Whether a rule begins the footer of a mailing list, or the headers of Outlook in a language whose words are not known. */
function isBeginningRule(lines: readonly Line[], index: number): boolean {
  const rule = lines[index]?.line ?? ''
  if (!BARE_RULE.test(rule)) return false
  const below = lines.slice(index + 1, index + 5).map(({ line }) => line)
  return below.some((line) => LIST_FOOTER.test(line)) || (OUTLOOK_RULE.test(rule) && HEADER.test(below[0] ?? ''))
}

/** Returns the index of the rule above the headers of a mail; without one, that of the headers. */
function ruleAbove(lines: readonly Line[], headers: number): number {
  const above = lines[headers - 1]?.line === '' ? headers - 2 : headers - 1
  return BARE_RULE.test(lines[above]?.line ?? '') ? above : headers
}

/** The characters that change the direction of writing. */
const DIRECTIONS = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

export interface Line {
  readonly at: number
  /** Without blanks at its end, and with a blank for each character that changes the direction of writing. */
  readonly line: string
  /** Whether it has no characters at all. */
  readonly isEmpty: boolean
}

export function linesOf(text: string): readonly Line[] {
  let at = 0
  const lines = text.replace(DIRECTIONS, ' ').split('\n')
  return lines.map((raw) => {
    const line = { at, line: raw.trimEnd(), isEmpty: raw === '' }
    at += raw.length + 1
    return line
  })
}

/**
 * Returns the index of the line with which the attribution begins that ends with this line; undefined if the line ends none. Mail
 * programs wrap long attributions. Words of the sender may end with a colon, too: an attribution names an address, or the time of
 * the quoted mail, or has a quote below it.
 */
function beginningOfAttribution(lines: readonly Line[], last: number): number | undefined {
  const below = lines.slice(last + 1, last + 4).find(({ line }) => line !== '')?.line ?? ''
  const hasQuote = /^[ \t]{0,4}>/.test(below)
  for (let first = last; first >= 0 && first > last - ATTRIBUTION_LINES_MAX; first--) {
    if (lines[first]?.line === '') break
    const said = lines
      .slice(first, last + 1)
      .map(({ line }) => line.trim())
      .join(' ')
    if (said.length > ATTRIBUTION_CHARS_MAX) break
    const [hasAddress, hasDate, wrote] = [ADDRESS.test(said), DATE.test(said), WROTE.test(said)]
    if (lines[last + 1]?.line === '' && isStamped(said)) return first
    if (ATTRIBUTION.test(said) && (hasQuote || (wrote && (hasDate || hasAddress)) || (hasAddress && hasDate))) return first
  }
  const own = lines[last]?.line ?? ''
  if (hasQuote && VIA_LIST.test(own)) return last
  const both = `${lines[last - 1]?.line ?? ''} ${own}`
  if (own === '>:' && isWhole(both)) return last - 1
  const isAlone = ADDRESS.test(own) || DATE.test(own)
  if (!isAlone || !(hasQuote || WROTE.test(own))) return undefined
  return isWhole(own) || !isWhole(both) ? last : last - 1
}

/** Whether a text has an address and the date and time of a mail, as attributions have in every language. */
const isStamped = (text: string): boolean =>
  BRACKETED.test(text) && TIME.test(text) && (text.replace(ADDRESS, '').match(/\p{Nd}+/gu) ?? []).length >= STAMP_NUMBERS_MIN

/** Whether a text has all parts of an attribution: who wrote, the address and the time. */
const isWhole = (text: string): boolean => text.length <= ATTRIBUTION_CHARS_MAX && ADDRESS.test(text) && DATE.test(text) && WROTE.test(text)

/** An attribution between two rules, as Zoho writes it, one without a verb or a colon, or headers without a break between them. */
const isOneLine = (line: string): boolean =>
  DATE.test(line) &&
  ((RULE.test(line) && WROTE.test(line)) || WITHOUT_VERB.test(line) || WITHOUT_COLON.test(line) || FLAT_HEADERS.test(line))

/** Returns the index of the line above a quote that begins with a date, names who wrote, and ends with no colon; otherwise that of the quote. */
function attributionAbove(lines: readonly Line[], quote: number): number {
  const above = lines[quote - 1]?.line === '' ? quote - 2 : quote - 1
  const said = lines[above]?.line ?? ''
  return /^[ \t]{0,4}>/.test(lines[quote]?.line ?? '') &&
    ((ADDRESS.test(said) && BARE_DATE.test(said)) || DATE_WITH_ZONE.test(said) || POSTED_BY.test(said))
    ? above
    : quote
}

/** Whether a header that names the sender stands alone above the words of others: above a mark, or with a name before the address. */
function isHeaderAlone(lines: readonly Line[], index: number, value: string): boolean {
  if (lines[index + 1]?.line !== '') return false
  return /^[^<[]{1,200}[<[].{3,250}[>\]]$/.test(value) || /^[ \t]{0,4}>/.test(lines[index + 2]?.line ?? '')
}

/** Returns the headers from this line on, up to the first other line; at most seven. */
function headersFrom(lines: readonly Line[], first: number): readonly { label: string; value: string }[] {
  const headers = []
  for (const { line } of lines.slice(first, first + 7)) {
    const [, label = '', value = ''] = HEADER.exec(line) ?? []
    if (label === '') break
    headers.push({ label: label.trim(), value })
  }
  return headers
}

/** Whether the headers of a mail begin here: a sender, and further headers in the lines below. */
function beginsHeaders(lines: readonly Line[], index: number): boolean {
  const [, label = '', value = ''] = HEADER.exec(lines[index]?.line ?? '') ?? []
  if (label === '') return false
  // A long name is wrapped before the address.
  const next = lines[index + 1]?.line.trim() ?? ''
  const isWrapped = (next.startsWith('<') || value.endsWith('[mailto:')) && ADDRESS.test(next)
  const hasAddress = ADDRESS.test(value) || isWrapped
  const isFrom = FROM.test(label.trim())
  if (SENT.test(label.trim()) && DATE.test(value)) {
    const below = headersFrom(lines, index + 1)
    return ADDRESS.test(below[0]?.value ?? '') || below.some(({ label: other }) => FROM.test(other))
  }
  if (!hasAddress && !isFrom) return false
  const labels = headersFrom(lines, index + (isWrapped ? 2 : 1)).map(({ label: further }) => further)
  if (isFrom && hasAddress && (labels.length > 0 || isHeaderAlone(lines, index, value))) return true
  if (isFrom && labels.length > 1 && SENT.test(labels[0] ?? '')) return true
  return hasAddress && labels.length >= HEADERS_MIN - 1
}

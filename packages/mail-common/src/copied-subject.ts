/** Subjects that a mail program made from the subject of the mail which is answered or forwarded. */

/** The marks of answers that nobody writes before a subject of one's own; some programs count them, as in `Re[2]:`. */
const ANSWER = /^(?:re|aw|antw|sv|odp|ynt|απ|σχετ|תגובה|回复|答复|回覆|返信|답장)\s{0,3}(?:\[\d{1,3}\])?\s{0,5}[:：]/i
/** The marks of forwards that nobody writes before a subject of one's own. */
const FORWARD = /^(?:fwd?|forward|weitergeleitet|doorst|továbbítás|πρθ|הועבר|转发|轉寄|転送|전달)\s{0,3}(?:\[\d{1,3}\])?\s{0,5}[:：]/i
/** Marks of answers and forwards that are words, too, as in `I: think of milk` and `WG: rent`. */
const SHORT = /^(?:wg|tr|trs|rv|enc|vl|vb|vs|fs|i|pd|ct|ilt|i̇lt|İLT|yml|r|res|ref|rif|ha|vá|bls|tl|atb)\s{0,3}(?:\[\d{1,3}\])?\s{0,5}[:：]/i
/** A tag that a gateway or a list puts in front, such as `[EXTERNAL]`. */
const TAG = /^\[[^\][]{1,40}\]/
const MARKS_MAX = 5

/** Whether the mail is a forward, or answers one, so that somebody else may have written its subject. */
export const isForwardSubject = (subject: string): boolean => marksOf(subject).includes(FORWARD)

/**
 * Whether the mail is an answer or a forward, so that somebody else may have written its subject. A short mark, such as `I:`, counts only
 * in a mail that has words of others.
 */
export const isCopiedSubject = (subject: string, hasWordsOfOthers: boolean): boolean =>
  marksOf(subject).some((mark) => mark !== SHORT || hasWordsOfOthers)

/** Returns the patterns of the marks before a subject, without the tags between them. */
function marksOf(subject: string): readonly RegExp[] {
  const marks: RegExp[] = []
  let rest = withoutTags(subject)
  while (marks.length < MARKS_MAX) {
    const mark = [ANSWER, FORWARD, SHORT].find((each) => each.test(rest))
    if (!mark) break
    marks.push(mark)
    rest = withoutTags(rest.replace(mark, ''))
  }
  return marks
}

function withoutTags(subject: string): string {
  let rest = subject.trimStart()
  for (let count = 0; count < MARKS_MAX && TAG.test(rest); count++) rest = rest.replace(TAG, '').trimStart()
  return rest
}

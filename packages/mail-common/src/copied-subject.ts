/** Subjects that a mail program made from the subject of the mail which is answered or forwarded. */

/** The marks of answers and of forwards that mail programs write in the usual languages; some count them, as in `Re[2]:`. */
const ANSWER = /^(?:re|aw|antw|sv|vs|res|ref|rif|r|odp|ynt|ha|回复|答复|回覆|返信|답장)\s{0,3}(?:\[\d{1,3}\])?\s{0,5}[:：]/i
const FORWARD = /^(?:fwd?|wg|tr|rv|enc|vl|vb|fs|i|pd|doorst|ilt|i̇lt|转发|轉寄|転送|전달)\s{0,3}(?:\[\d{1,3}\])?\s{0,5}[:：]/i

/** Whether the mail is a forward, so that somebody else may have written its subject. */
export const isForwardSubject = (subject: string): boolean => FORWARD.test(subject.trimStart())

/** Whether the mail is an answer or a forward, so that somebody else may have written its subject. */
export const isCopiedSubject = (subject: string): boolean => ANSWER.test(subject.trimStart()) || isForwardSubject(subject)

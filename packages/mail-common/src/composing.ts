/** Composing mails, apart from the other parts because it needs a library. */

export { composeMail, type MailToCompose } from './compose-mail.ts'

/** The fake of mailpush on loopback, for tests of this package and of the whole product. */
export { type MailpushFake, type MailpushFakeOptions, startMailpushFake } from './fake.ts'
export { createPushKeys, encodeJson, type PushClaims } from './fake-push.ts'
export { readSentMail } from './fake-sent.ts'

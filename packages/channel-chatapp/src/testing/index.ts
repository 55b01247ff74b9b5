/** The fake of chatapp on loopback, for tests of this package and of the whole product. */
export { type ChatappFake, type ChatappFakeOptions, type ChatappMedia, type ChatappSent, startChatappFake } from './fake.ts'

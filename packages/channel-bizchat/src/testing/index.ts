/** The fake of bizchat on loopback, for tests of this package and of the whole product. */
export { BIZCHAT_TOKEN, type BizchatFake, type BizchatFakeOptions, type BizchatSent, startBizchatFake } from './fake.ts'

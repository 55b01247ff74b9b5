/** The fake of textrelay on loopback, for tests of this package and of the whole product. */
export {
  startTextrelayFake,
  TEXTRELAY_PHONE,
  TEXTRELAY_TOKEN,
  type TextrelayFake,
  type TextrelayFakeOptions,
  type TextrelaySent,
  textrelaySignatures,
} from './fake.ts'

/** The fake of a speech service on loopback, and audio, for tests. */
export { type SpeechFake, type SpeechFakeOptions, startSpeechFake } from './fake.ts'
export { toneWav } from './tone.ts'

/** The fake of a transcription service on loopback, for tests. */
export { type HeardRecording, startTranscriptionFake, type TranscriptionFake, type TranscriptionFakeOptions } from './fake.ts'

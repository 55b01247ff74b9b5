/** The fake of a transcription service on loopback, and real folders and programs, for tests. */
export { type HeardRecording, startTranscriptionFake, type TranscriptionFake, type TranscriptionFakeOptions } from './fake.ts'
export { realSpawn, realWorkspace } from './real-folder.ts'

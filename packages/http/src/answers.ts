/** The types of the answers of the API, for clients written in TypeScript. */
export type { CommandFrame, CommandInput } from '@sluice/runtime/command-frames'
export type { DevicesPage, NewDeviceAnswer, PairingCode } from './routes/devices.ts'
export type { MemoriesMoved, MemoriesPage, Memory } from './routes/memories.ts'
export type { ModelTestFrame } from './routes/model-test.ts'
export type { ListedEndpoint, ListedModel, ModelsPage } from './routes/models.ts'
export type { Erasure, Session, SessionLine, SessionsPage, SessionWithSummary } from './routes/sessions.ts'
export type { ChecksPage, FeaturesPage, Status } from './routes/status.ts'
export type { ChatFrame } from './streams/chat-frames.ts'

import type { Clock, KeyValue, Logger } from '@sluice/sdk'
import type { VoiceCallConfig } from './config.ts'
import type { MediaSessionOptions } from './media-session.ts'
import type { Provider } from './provider.ts'

export interface CallsOptions {
  readonly config: VoiceCallConfig
  readonly provider: Provider
  readonly clock: Clock
  readonly log: Logger
  readonly keyValue: KeyValue
  /** The parts of a media stream; undefined while [transcription] or [speech] is off. */
  audio(): Pick<MediaSessionOptions, 'speak' | 'transcribe' | 'workspace'> | undefined
  /** Names a call that is placed. Unique. */
  newToken(): string
}

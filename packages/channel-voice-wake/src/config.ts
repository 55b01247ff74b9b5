/** The section `[channels_config.voice_wake]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'
import { wordsIn } from './wake-word.ts'

const RECORDERS = ['auto', 'arecord', 'parec', 'pw-record', 'sox'] as const

/** A name that begins with a hyphen would be an option of the recorder. */
const device = v.pipe(v.string(), v.regex(/^[^-\p{Cc}][^\p{Cc}]{0,199}$/u, 'must be the name of a device, such as plughw:1,0'))

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
  // Required, so that no daemon records before its operator has asked for it.
  wake_word: v.pipe(
    v.string(),
    v.maxLength(100),
    v.check((text) => wordsIn(text).length > 0, 'must contain a letter or a digit'),
    v.description('Words that begin a command; case, accents of letters and punctuation do not matter'),
  ),
  wake_whole_word: v.optional(
    v.pipe(v.boolean(), v.description('True: the wake word is not found inside of other words, such as ada in Canada')),
    false,
  ),
  silence_timeout_ms: v.optional(v.pipe(whole(200, 10_000), v.description('Silence that ends an utterance')), 2000),
  energy_threshold: v.optional(
    v.pipe(
      v.number(),
      v.minValue(0.0001),
      v.maxValue(1),
      v.description('Loudness from which sound counts as speech: the root mean square of samples between -1 and 1'),
    ),
    0.01,
  ),
  max_capture_secs: v.optional(v.pipe(whole(1, 300), v.description('Longest utterance')), 30),
  max_transcriptions_per_minute: v.optional(
    v.pipe(whole(1, 600), v.description('Most calls of the transcription in a minute; further utterances are not heard')),
    20,
  ),
  recorder: v.optional(
    v.pipe(v.picklist(RECORDERS), v.description('Program that records; auto takes the first that is installed, in this order')),
    'auto',
  ),
  device: v.optional(v.pipe(device, v.description('Device or source of the recorder; absent: its default'))),
})

export const voiceWakeSection = { path: 'channels_config.voice_wake', schema } as const

export type VoiceWakeConfig = v.InferOutput<typeof schema>

/** The parts that the voice channels share: the utterances in a stream of samples, and WAV files of samples. */

export { loudness, type Utterance, Utterances, type UtterancesOptions } from './utterances.ts'
export { toWav } from './wav.ts'

/** Watches the channels while deliveries run: their health, the clock by which ages are measured, and what waits for channels that are not there. */
import { every, followClock } from '@sluice/kit'
import { AbsentChannels, type AbsentChannelsOptions } from './absent-channels.ts'
import { HealthWatch } from './outbox/health-watch.ts'
import { RecallHealth, type RecallOptions } from './outbox/recall-health.ts'

/** The interval of checks of the health of channels. */
const LOOK_MS = 1000
/** The interval of looks for rows of channels that are not there. A channel is ready within it after a start. */
const ABSENT_LOOK_MS = 60_000

export interface WatchOptions extends AbsentChannelsOptions, Pick<RecallOptions, 'store'> {
  /** Called with each look at the health of channels. */
  onLook(): void
}

/** Watches until the signal aborts. */
export function watchChannels(options: WatchOptions, signal: AbortSignal): void {
  const { clock, features, onLook } = options
  const health = new HealthWatch(options)
  const recall = new RecallHealth(options)
  const absent = new AbsentChannels(options)
  followClock(clock)
  void every(clock, LOOK_MS, signal, () => {
    followClock(clock)
    recall.look(features.channels())
    health.look(features.channels())
    onLook()
  })
  void every(clock, ABSENT_LOOK_MS, signal, () => void absent.look())
}

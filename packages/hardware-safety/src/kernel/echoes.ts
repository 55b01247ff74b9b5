/** An ultrasonic sensor with a trigger and an echo line: the length of the echo, by the clock of the kernel's interrupts, is the way. */
import type { EdgeEvent, Level } from '@sluice/hardware'
import type { Clock } from '@sluice/sdk'

export interface EchoDeps {
  /** The same one as that of the edges. */
  readonly clock: Clock
  /** May throw. */
  readonly trigger: (level: Level) => void
  /** Metres, and when it was heard. */
  readonly heard: (distance: number, takenMs: number) => void
}

export interface Echoes {
  /** Sends a sound unless one is under way; as often as one likes. Throws what `trigger` does. */
  ping(): void
  edge(event: EdgeEvent): void
}

/** Metres a nanosecond, there and back, at 20 °C. */
const METRES_A_NS = 343.2e-9 / 2
/** Sensors of this kind tell nothing that is farther, and lengthen their echo when nothing is there. */
const RANGE = 4
/** Until the last echo has died away. */
const PAUSE_MS = 60

/** Where no echo comes at all nothing is told: the sensor is broken or not there, and its last reading goes stale. */
export function createEchoes({ clock, trigger, heard }: EchoDeps): Echoes {
  let pingedAtMs = Number.NEGATIVE_INFINITY
  let risen: bigint | undefined
  return {
    ping() {
      const nowMs = clock.monotonicMs()
      if (nowMs - pingedAtMs < PAUSE_MS) return
      pingedAtMs = nowMs
      risen = undefined
      // It wants 10 µs or more: two system calls take longer than that
      trigger(1)
      trigger(0)
    },
    edge({ edge, atNs }) {
      if (edge === 'rising') {
        // That of an earlier sound, told late because this process was held up: what it saw is older than it would seem
        risen = Number(atNs) / 1e6 < pingedAtMs ? undefined : atNs
        return
      }
      if (risen === undefined) return
      const distance = Number(atNs - risen) * METRES_A_NS
      risen = undefined
      heard(distance > RANGE ? Number.POSITIVE_INFINITY : distance, pingedAtMs)
    },
  }
}

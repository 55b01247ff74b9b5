/** The pins of the single-board computer Sluice runs on (§2.7 rule 5): found by itself, no configuration. */
import { openGpio } from '@sluice/hardware'
import { sbcFeature } from './sbc-feature.ts'

export default sbcFeature({ root: '/', openGpio })

/** The pins of the single-board computer that Sluice runs on. The feature needs no configuration. See docs/sbc.md. */
import { openGpio } from '@sluice/hardware'
import { sbcFeature } from './sbc-feature.ts'

export default sbcFeature({ root: '/', openGpio })

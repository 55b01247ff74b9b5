/** USB and serial boards (§2.7 rule 4): found by themselves, under stable names, behind one line protocol. */
import { boardsFeature } from './boards-feature.ts'

export default boardsFeature()

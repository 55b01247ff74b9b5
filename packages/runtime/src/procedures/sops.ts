/** Procedures for programs that start no daemon: where they are, and how runs and records show. */

export { agreeAtUpgrade } from './agree-at-upgrade.ts'
export { sopSettings } from './sop-settings.ts'
export { shownAudit, shownRun, shownSop } from './sops-shown.ts'

/** The settings that the channels `chatapp` and `chatapp-web` share. */

export { chatappKeys } from './chatapp-section.ts'

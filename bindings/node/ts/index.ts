/// <reference types="node" preserve="true" />
/**
 * The process half of an agent's execution world: owned process trees, bounded output that can be read again, terminals, an
 * environment without credentials, and one verb that ends a whole tree.
 *
 * @packageDocumentation
 */
export { OutputCollector } from './collector.js'
export { childEnv, scrubbedParentEnv, SENSITIVE_ENV_PATTERN } from './environment.js'
export { SubprocessError, type SubprocessErrorFacts, type SubprocessErrorKind } from './errors.js'
export { killGroup, taskkillProcessTree } from './group.js'
export {
  type BaseConstructor,
  type EffectScope,
  LocalSubprocessRuntime as default,
  type LocalSubprocess,
  type LocalSubprocessConstructor,
  localSubprocess,
  LocalSubprocessRuntime,
  type LocalSubprocessSettings,
  spawnSubprocess,
} from './runtime.js'
export * from './types.js'

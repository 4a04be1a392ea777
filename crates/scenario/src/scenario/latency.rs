//! Which latency model a scenario has: coefficients, a constant, a profile, measured operators or
//! the roofline.

use super::canonical::{Spell, group};
use super::machine::{Reader, model};
use super::schema::KvDtype;
use super::workload::beside;
use crate::board::{self, Known};
use crate::hash;
use crate::input;
use crate::legal::Coefficient;
use crate::problem::{Problem, hint, quoted, unknown};
use crate::problems::{Problems, Together, every};
use crate::profile::{self, ProfileFile, ProfiledMachine};
use crate::yaml::{Amount, Whole};
use blis_core::Span;
use blis_latency::{
    Catalogue, Coefficients, Constant, Fit, Gpu, Model, ModelShape, OperatorError, Operators,
    Roofline, StepTime,
};
use std::path::Path;
use std::sync::Arc;

const DEFAULT_STEP_US: f64 = 100.0;

/// The models that have a name.
const KNOWN: [&str; 5] = ["coefficients", "constant", "operators", "profile", "roofline"];

/// The profile of the server whose host measured operators are given.
const HOST_OF: &str = "h200-vllm-0.26-llama-3.1-8b";

/// How well measured operators are known, computed by `crates/latency/tests/it/operators.rs`.
const OPERATORS_ARE: &str = "the latency model is composed of operators measured one at a time: \
    steps of vLLM 0.26 on an H200 are within 3 % decoding and 10 % with prefill";

/// A latency model, and the machine that it stands for if it is not the one of a fit.
pub(super) struct Chosen {
    pub(super) model: Arc<dyn StepTime>,
    /// The same, in words: equal exactly if the models are.
    pub(super) name: String,
    pub(super) hardware: Option<String>,
    pub(super) tp: Option<u32>,
    /// What whoever reads its times must know.
    pub(super) caveat: Option<String>,
}

impl Chosen {
    fn plain(model: impl StepTime + 'static, name: String) -> Chosen {
        Chosen { model: Arc::new(model), name, hardware: None, tp: None, caveat: None }
    }

    /// The roofline of a machine for which there is nothing measured and that nobody asked for.
    fn for_want_of_better(self) -> Chosen {
        let why = "no step times were measured on this machine: the latency model is the roofline";
        let caveat = self.caveat.map_or_else(|| why.to_owned(), |own| format!("{why}; {own}"));
        Chosen { caveat: Some(caveat), ..self }
    }

    fn profiled(file: ProfileFile, largest_graph: Option<u32>) -> Chosen {
        let profile = file.profile.with_graphs_up_to(largest_graph);
        let file = ProfileFile { profile, ..file };
        // The text of a profile has its coefficients to the last bit.
        let hash = hash::hash(profile::text(&file).as_bytes());
        let ProfileFile { machine, profile } = file;
        Chosen {
            model: Arc::new(profile),
            name: format!("profile {hash:016x}"),
            hardware: machine.hardware,
            tp: machine.tp,
            caveat: None,
        }
    }
}

impl Reader<'_> {
    /// The profile of a file, with a word if it was measured on another machine.
    fn profiled(&self, file: ProfileFile) -> Chosen {
        let here = ProfiledMachine {
            model: Some(model(self.scenario)),
            hardware: self.scenario.hardware.clone(),
            tp: self.scenario.tp.map(Whole::get_u32),
        };
        let caveat = file.machine.unlike(&here);
        let chosen = Chosen::profiled(file, self.scenario.engine.largest_graph());
        Chosen { caveat, ..chosen }
    }

    /// The latency model that is asked for; without asking, the coefficients of the catalogue; if
    /// there are none, the profile that ships for the machine; if there is none, the roofline.
    pub(super) fn latency(
        &self,
        catalogue: &Catalogue,
        fit: Result<&Fit, &Problems>,
    ) -> Result<Chosen, Problems> {
        let fields = &self.scenario.latency;
        if fields.host_factor.is_some() && fields.model.as_deref() != Some("operators") {
            let message = "only the latency model `operators` reads it; remove it";
            return Err(self.problem("latency.host_factor", message));
        }
        if let Some(field) = self.beyond_tp().filter(|_| fields.model.is_some())
            && fields.model.as_deref() != Some("operators")
        {
            let message = "only the latency model `operators` knows it; choose that, or remove it";
            return Err(self.problem(field, message));
        }
        match fields.model.as_deref() {
            None if self.beyond_tp().is_some() => self.operators(catalogue, fit.ok()),
            None => {
                let given = self.tree.has("latency.alpha_us") || self.tree.has("latency.beta_us");
                if given || fit.is_ok() || fields.step_us.is_some() {
                    return self.linear(fit);
                }
                let known = self.scenario.hardware.is_some() && self.shape(catalogue).is_ok();
                match self.shipped(catalogue) {
                    Some(file) => Ok(self.profiled(file)),
                    None if known => self.roofline(catalogue, None).map(Chosen::for_want_of_better),
                    None => self.linear(fit),
                }
            }
            Some("coefficients" | "blackbox") => self.linear(fit),
            Some("constant") => self.constant(),
            Some("profile") => {
                self.without_coefficients("profile")?;
                let file = self.shipped(catalogue).ok_or_else(|| {
                    let message = "no profile ships for this machine; give the path of one, or \
                        `roofline`";
                    self.problem("latency.model", message)
                })?;
                Ok(self.profiled(file))
            }
            Some("roofline") => self.roofline(catalogue, fit.ok()),
            Some("operators") => self.operators(catalogue, fit.ok()),
            Some(name) if profile::names().contains(&name) => {
                self.without_coefficients("profile")?;
                Ok(self.profiled(profile::named(name).expect("it is one of the names")))
            }
            Some(path) if is_path(path) => {
                self.without_coefficients("profile")?;
                let path = beside(self.tree, "latency.model", path);
                profile::read(&path).map(|file| self.profiled(file))
            }
            Some(other) => {
                let message = format!(
                    "found `{other}`{}; legal: {} (`blackbox` is an alias of `coefficients`), a \
                     profile that ships ({}), or the path of one (`FILE.yaml`)",
                    hint(other, KNOWN.into_iter().chain(profile::names())),
                    quoted(&KNOWN),
                    quoted(&profile::names())
                );
                Err(self.problem("latency.model", message))
            }
        }
    }

    fn shipped(&self, catalogue: &Catalogue) -> Option<ProfileFile> {
        let model = catalogue.model(self.model())?;
        let tp = self.scenario.tp.map(Whole::get_u32);
        profile::shipped(&model.name, self.scenario.hardware.as_deref(), tp)
    }

    fn linear(&self, fit: Result<&Fit, &Problems>) -> Result<Chosen, Problems> {
        let fields = &self.scenario.latency;
        if fields.step_us.is_some() {
            let message = "only the latency model `constant` reads it; remove it";
            return Err(self.problem("latency.step_us", message));
        }
        let given = (
            self.coefficients("latency.alpha_us", fields.alpha_us.as_ref()),
            self.coefficients("latency.beta_us", fields.beta_us.as_ref()),
        );
        let (alpha, beta) = given.together()?;
        let (alpha, beta) = match (alpha, beta, fit) {
            (Some(alpha), Some(beta), _) => (alpha, beta),
            (alpha, beta, Ok(fit)) => (alpha.unwrap_or(fit.alpha_us), beta.unwrap_or(fit.beta_us)),
            (_, _, Err(problem)) => return Err(problem.clone()),
        };
        let model = Coefficients::new(alpha, beta)
            .map_err(|error| self.problem("latency", error.to_string()))?;
        let name = format!("coefficients alpha_us={} beta_us={}", alpha.spell(), beta.spell());
        Ok(Chosen::plain(model, name))
    }

    fn constant(&self) -> Result<Chosen, Problems> {
        self.without(&["latency.alpha_us", "latency.beta_us"], "constant")?;
        let micros = self.scenario.latency.step_us.map_or(DEFAULT_STEP_US, |step| step.get());
        let model = Constant { step: Span::from_micros_f64(micros) };
        Ok(Chosen::plain(model, format!("constant step_us={}", micros.spell())))
    }

    /// The scenario's GPU and tensor parallelism; what it leaves open is that of the model's fit.
    fn gpus<'c>(
        &self,
        catalogue: &'c Catalogue,
        fit: Option<&Fit>,
        model: &str,
    ) -> Result<(&'c Gpu, u32), Problems> {
        self.without_coefficients(model)?;
        let gpus: Vec<&str> = catalogue.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        let given = self.scenario.hardware.as_deref();
        let Some(name) = given.or_else(|| fit.map(|fit| fit.gpu.as_str())) else {
            let message =
                format!("missing; the latency model `{model}` needs one of {}", quoted(&gpus));
            return Err(self.problem("hardware", message));
        };
        let gpu = catalogue.gpu(name);
        let gpu = gpu.ok_or_else(|| self.problem("hardware", unknown("GPU", name, &gpus)))?;
        let tp = self.scenario.tp.map(Whole::get_u32).or_else(|| fit.map(|fit| fit.tp));
        Ok((gpu, tp.unwrap_or(1)))
    }

    /// The roofline of the scenario's machine.
    fn roofline(&self, catalogue: &Catalogue, fit: Option<&Fit>) -> Result<Chosen, Problems> {
        let (gpu, tp) = self.gpus(catalogue, fit, "roofline")?;
        let efficiency = catalogue.efficiency(gpu).expect("every GPU has one: a test");
        let shape = self.shape(catalogue)?;
        let parts = [
            ("model", shape.spell()),
            ("gpu", gpu.sheet().spell()),
            ("tp", tp.spell()),
            ("efficiency", efficiency.spell()),
        ];
        let name = format!("roofline {}", group("Roofline", &parts));
        let model = Roofline::new(shape, gpu.sheet(), tp, efficiency)
            .map_err(|error| self.problem("tp", error.to_string()))?;
        let (hardware, caveat) = (Some(gpu.name.clone()), gpu.caveat());
        Ok(Chosen { hardware, tp: Some(tp), caveat, ..Chosen::plain(model, name) })
    }

    /// The measured operators of the scenario's machine, with the host of a measured server.
    fn operators(&self, catalogue: &Catalogue, fit: Option<&Fit>) -> Result<Chosen, Problems> {
        let (gpu, tp) = self.gpus(catalogue, fit, "operators")?;
        let shape = self.shape(catalogue)?;
        let server = profile::named(HOST_OF).expect("it ships");
        let graphs = self.scenario.engine.largest_graph();
        let server = server.profile.with_graphs_up_to(graphs);
        let server = server.parameters();
        let factor = self.scenario.latency.host_factor.map_or(1.0, |factor| factor.get());
        let host = server.host.as_ref().map(|host| host.with_steps(factor));
        let parallel = self.parallel(tp);
        let model = Operators::new(&shape, gpu, parallel, server.padding.clone(), host.as_ref());
        let model = model.map_err(|error| {
            let measured: Vec<&str> = blis_latency::operators::gpus().collect();
            match error {
                OperatorError::Gpu(_) => {
                    let message = format!("{error}; legal: {}", quoted(&measured));
                    self.problem("hardware", message)
                }
                OperatorError::Shared { name, .. } => self.problem(name, error.to_string()),
                _ => self.problem("tp", error.to_string()),
            }
        })?;
        let mut parts = vec![
            ("model", shape.spell()),
            ("gpu", gpu.name.spell()),
            ("sheet", gpu.sheet().spell()),
            ("sustained", gpu.sustained_tflops.map(|rates| rates.to_vec()).spell()),
            ("tables", blis_latency::operators::checksum(&gpu.name).spell()),
            ("tp", tp.spell()),
            ("host", HOST_OF.spell()),
            ("host_factor", factor.spell()),
            ("graphs", graphs.spell()),
        ];
        if self.beyond_tp().is_some() {
            parts.push(("parallel", parallel.to_string().spell()));
        }
        let name = format!("operators {}", group("Operators", &parts));
        let models = match (shape.experts, parallel.expert) {
            (None, _) => "dense",
            (Some(_), false) => "experts",
            (Some(_), true) => "divided experts",
        };
        let Known { tpot, ttft } = board::operators(&gpu.name, models);
        let known = format!(
            "{OPERATORS_ARE}; servers of this kind that others measured are off by {:.0} % in time \
             per token and {:.0} % in TTFT on average",
            100.0 * tpot,
            100.0 * ttft
        );
        let notes = model.notes().iter().cloned();
        let caveat: Vec<String> = std::iter::once(known).chain(notes).collect();
        let caveat = Some(caveat.join("; "));
        let hardware = Some(gpu.name.clone());
        Ok(Chosen { hardware, tp: Some(tp), caveat, ..Chosen::plain(model, name) })
    }

    /// The shape of the scenario's model with the KV cache that the engine is given.
    pub(super) fn shape(&self, catalogue: &Catalogue) -> Result<ModelShape, Problems> {
        let mut shape = self.model_shape(catalogue)?;
        match self.scenario.engine.kv_cache_dtype.unwrap_or_default() {
            KvDtype::Auto => {}
            KvDtype::Bf16 => shape.formats.kv_fp8 = false,
            KvDtype::Fp8 => shape.formats.kv_fp8 = true,
        }
        Ok(shape)
    }

    /// The shape of the scenario's model: of the catalogue, or of a `config.json`.
    fn model_shape(&self, catalogue: &Catalogue) -> Result<ModelShape, Problems> {
        let name = self.model();
        if is_config(name) {
            let path = beside(self.tree, "model", name);
            let text = input::open(&path)
                .and_then(std::io::read_to_string)
                .map_err(|error| Problem::unreadable(&path.display().to_string(), &error))?;
            return ModelShape::from_hf_config(&text)
                .map_err(|error| self.problem("model", format!("{}: {error}", path.display())));
        }
        catalogue.model(name).map(Model::shape).ok_or_else(|| {
            let names: Vec<&str> = catalogue.models.iter().map(|m| m.name.as_str()).collect();
            let unknown = unknown("model", name, &names);
            self.problem("model", format!("{unknown}; or the path of a `config.json`"))
        })
    }

    fn without_coefficients(&self, model: &str) -> Result<(), Problems> {
        self.without(&["latency.step_us", "latency.alpha_us", "latency.beta_us"], model)
    }

    /// Refuses fields that the latency model `model` does not read.
    fn without(&self, paths: &[&str], model: &str) -> Result<(), Problems> {
        let message = format!("the latency model `{model}` does not read it; remove it");
        let given = paths.iter().filter(|path| self.tree.has(path));
        every(given.map(|path| Err::<(), _>(self.problem(path, message.as_str())))).map(drop)
    }

    fn coefficients(
        &self,
        path: &str,
        list: Option<&Vec<Amount<Coefficient>>>,
    ) -> Result<Option<[f64; 3]>, Problems> {
        let Some(list) = list else { return Ok(None) };
        let numbers: Vec<f64> = list.iter().map(Amount::get).collect();
        <[f64; 3]>::try_from(numbers).map(Some).map_err(|numbers| {
            let message = format!("found {} numbers; legal: three (microseconds)", numbers.len());
            self.problem(path, message)
        })
    }
}

/// Whether the name of a model is meant as the path of a profile.
pub(super) fn is_path(name: &str) -> bool {
    let ending = Path::new(name).extension();
    name.contains('/') || ending.is_some_and(|ending| ending == "yaml" || ending == "yml")
}

/// Whether the name of a model is meant as the path of a `config.json`.
pub(super) fn is_config(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "json")
}
